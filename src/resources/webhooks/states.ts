import { defineStates } from '../../shared/states.ts'

/**
 * Lifecycle of a delivery (decisions: Deliveries). Nothing is final: whatever was sent can be sent again, and
 * an answer that came after it was given up counts.
 */
export const deliveryStates = defineStates('webhook_delivery', 'pending', {
  pending: { delivered: 'the receiver has it', dead: 'it was given up, and is kept for replay' },
  delivered: { pending: 'its merchant replays it' },
  dead: {
    pending: 'its merchant replays it, or enables its endpoint again',
    delivered: 'the receiver had it already',
  },
})
