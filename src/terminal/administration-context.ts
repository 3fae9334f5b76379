import type { Services } from '../context.ts'

/** The services that an administration command needs. */
export type AdminServices = Pick<Services, 'config' | 'database' | 'access' | 'restores'> & {
  /** Reports the progress of a long command to the person who waits for it. */
  progress?: (words: string) => void
}
