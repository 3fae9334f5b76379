import type { SettingsWords } from './fr.ts'

/** The words of the settings in English. */
export const en: SettingsWords = {
  title: 'Settings',
  mayNot: 'Your role does not allow you to see the settings.',
  save: 'Save',
  saved: 'Saved.',
  shop: {
    title: 'Shop',
    name: 'Name',
    nameHint: 'Your customers read it when they pay.',
    locale: 'Language of e-mails to the team',
    locales: { fr: 'French', en: 'English' },
    phone: 'Telephone of the shop (optional)',
    address: 'Address (optional)',
    contactHint: 'Your customers see them when they pay, and on their receipt.',
    email: 'E-mail for messages of the service (optional)',
    timeZone: 'Time zone',
    timeZoneHint: 'It says at which hour a day begins in figures and statements.',
  },
  approvals: {
    title: 'Approvals',
    lead: 'A second person looks before money leaves.',
    isOn: 'Payouts and payrolls need an approval',
    threshold: 'From this amount (0: always)',
    required: 'People who must approve',
    deposits: 'Deposits and refunds too',
    tooFew: (needed, others) =>
      `The person who asks does not approve: ${needed} other people are needed, and the team has ` +
      `only ${others}. Invite them first, or nothing can leave.`,
    tooFewOne:
      'The person who asks does not approve, and the team has no other person who approves. ' +
      'Invite one first, or nothing can leave.',
    team: 'See the team',
    waits: 'A less strict change waits for an approval: the earlier rules still hold.',
    waiting: 'See what waits',
    conflict: 'Another change waits for an approval already: approve or reject it first.',
    asked: 'Requested: the change waits for an approval.',
  },
  addresses: {
    title: 'Allowed addresses',
    lead: 'Only these IP addresses can use the account, by a program or by these pages. Empty: all.',
    field: 'Addresses',
    hint: 'One on each line, for example 41.73.96.10 or 41.73.96.0/24. Yours must be among them.',
  },
  wrong: {
    businessName: 'Write a name of at most 200 characters.',
    notificationEmail: 'Write a complete e-mail address, or nothing.',
    businessPhone: 'Write a complete number, for example 76 12 34 56, or nothing.',
    businessAddress: 'Write an address of at most 200 characters.',
    timeZone: 'This time zone is not possible here: it must differ from universal time by whole hours.',
    approvalThreshold: 'Write a whole amount, without cents.',
    approvalsRequired: 'Choose one, two or three people.',
    ipWhitelist: 'An address is not correct, or yours is missing.',
    locale: 'Choose a language.',
    payoutsRequireApproval: 'This choice is not possible.',
    approvalsCoverDeposits: 'This choice is not possible.',
  },
}
