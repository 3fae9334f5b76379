import { defineStates } from '../../shared/states.ts'

/**
 * The lifecycle of a delivery (see docs/design/events.md#deliveries). No state is final: every event can be
 * sent again, and an answer counts even if it comes after the delivery became `dead`.
 */
export const deliveryStates = defineStates('webhook_delivery', 'pending', {
  pending: { delivered: 'the receiver has it', dead: 'it is no longer sent, and is kept for replay' },
  delivered: { pending: 'its merchant replays it' },
  dead: {
    pending: 'its merchant replays it, or enables its endpoint again',
    delivered: 'the receiver had it already',
  },
})
