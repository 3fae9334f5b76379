import type { OperatorCall } from '../../src/simulator/calls.ts'

export type OperatorOp = OperatorCall['op']

/** The calls that the operators received, in the order of their arrival. */
export async function operatorCalls(
  url: string,
  controlToken: string,
  op?: OperatorOp,
): Promise<readonly OperatorCall[]> {
  const answer = await fetch(`${url}/_sim/calls${op ? `?op=${op}` : ''}`, {
    headers: { 'x-control-token': controlToken },
  })
  if (!answer.ok) throw new Error(`_sim/calls: ${answer.status}`)
  return (await answer.json()) as OperatorCall[]
}

/** The most calls of each group that were open at the same moment. Calls of no group do not count. */
export function mostOpen<Call extends OperatorCall, Group>(
  calls: readonly Call[],
  groupOf: (call: Call) => Group | undefined,
): Map<Group, number> {
  const steps = calls.flatMap((call) => {
    const group = groupOf(call)
    if (group === undefined) return []
    return [
      { group, place: call.arrived, by: 1 },
      { group, place: call.ended ?? Number.POSITIVE_INFINITY, by: -1 },
    ]
  })
  const open = new Map<Group, number>()
  const most = new Map<Group, number>()
  for (const { group, by } of steps.toSorted((a, b) => a.place - b.place)) {
    const now = (open.get(group) ?? 0) + by
    open.set(group, now)
    most.set(group, Math.max(most.get(group) ?? 0, now))
  }
  return most
}
