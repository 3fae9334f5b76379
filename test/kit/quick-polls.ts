import type * as schedule from '../../src/requests/schedule.ts'

type Schedule = typeof schedule

/**
 * The schedule of questions for tests that wait for an outcome: an operator without callbacks is asked after
 * a tenth of the time. (The schedule itself: `test/requests/schedule.test.ts`.)
 */
export function quickPolls(real: Schedule): Schedule {
  const sooner = <Rest extends unknown[]>(
    next: (notify: 'callback' | 'polling', ...rest: Rest) => number,
  ) => {
    return (notify: 'callback' | 'polling', ...rest: Rest) =>
      Math.round(next(notify, ...rest) / (notify === 'polling' ? 10 : 1))
  }
  return {
    ...real,
    nextCheckMs: sooner(real.nextCheckMs),
    nextDisburseCheckMs: sooner(real.nextDisburseCheckMs),
  }
}
