import type { Services } from '../context.ts'

/** What an administration command needs of the services. */
export type AdminServices = Pick<Services, 'config' | 'database' | 'access' | 'restores'> & {
  /** Tells a person who waits how far a long command is. */
  progress?: (words: string) => void
}
