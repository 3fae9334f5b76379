/** The most database sessions of each pool. Choices; tests have fewer (`test/kit/patience.ts`). */
export const poolSizes = {
  allMerchants: 12,
  oneMerchant: 6,
  /** One session holds the leases of all queues. */
  leases: 6,
}
