import { sqlFunction } from '../database/sql-function.ts'

/** Gives the jobs of engines that are gone to those that live. @returns how many engines were gone */
export const recoverJobs = sqlFunction('recover_jobs', { takes: {}, gives: 'int' })
