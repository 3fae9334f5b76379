import { sqlFunction } from '../database/sql-function.ts'

/** Gives the jobs of dead engines to living ones. @returns how many dead engines had jobs */
export const recoverJobs = sqlFunction('recover_jobs', { takes: {}, gives: 'int' })
