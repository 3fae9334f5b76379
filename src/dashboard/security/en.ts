import type { SecurityWords } from './fr.ts'

/** The words about a person's own way of signing in, in English. */
export const en: SecurityWords = {
  factor: {
    title: 'Six-digit code',
    lead: 'With it, a stolen password is not enough: your telephone gives a new code every 30 seconds.',
    isOn: 'On: you sign in with a code.',
    withoutCodes:
      'On. If you have not seen your recovery codes, switch it off and on again: you will get other ones.',
    isOff: 'Not on.',
    password: 'Your password',
    start: 'Switch on',
    next: 'Continue',
    scan: 'Open an authenticator application on your telephone and read this QR code.',
    open: 'On this telephone: open the application',
    secret: 'Or type this key into the application:',
    code: 'Code that the application shows',
    confirm: 'Confirm',
    codes: 'Your recovery codes',
    codesLead:
      'Without your telephone, each of them replaces a code once. They are not shown again: print them or ' +
      'write them down.',
    codesLeave: 'Have you kept your recovery codes? They will not be shown again.',
    codesPrint: 'Print',
    codesKept: 'I have kept them',
    stop: 'Switch off',
    stopCode: 'A code of the application, or a recovery code',
    stopped: 'Switched off.',
    wrongPassword: 'This password is not correct.',
    wrongCode: 'This code is not correct, or was used already. Wait for the next one.',
    wrongEither: 'The password or the code is not correct.',
    changed: 'The state has changed meanwhile.',
    cancel: 'Cancel',
    qr: 'QR code for the authenticator application',
  },
  password: {
    title: 'Password',
    open: 'Change the password',
    current: 'Present password',
    next: 'New password',
    hint: 'At least 12 characters: a sentence is easy to remember.',
    send: 'Change',
    saved: 'Password changed. Your other devices are signed out.',
    wrongCurrent: 'The present password is not correct.',
    lost:
      'The answer did not arrive. Try again: if the present password is then refused, the new one is ' +
      'already in use.',
    wrongAfterLost: 'Refused: your new password is probably already in use.',
    tooWeak: 'Too short, or too easy to guess. Take at least 12 characters that are hard to guess.',
  },
}
