/** Changes that the owner of the database could try; `at(n)` is entry number n. */
const at = (n: number) => `(SELECT entry_id FROM audit_link WHERE merchant_id = $1 AND position = ${n})`
export const tampering: Readonly<Record<string, readonly [statement: string, fault: object]>> = {
  'an edit': [
    `UPDATE audit_entry SET after = '{"amount": 1}' WHERE merchant_id = $1 AND id = ${at(3)}`,
    { sequence: 3, problem: 'ALTERED' },
  ],
  'an entry deleted': [
    `DELETE FROM audit_entry WHERE merchant_id = $1 AND id = ${at(2)}`,
    { sequence: 2, problem: 'MISSING' },
  ],
  'an entry deleted with its link': [
    `WITH link AS (DELETE FROM audit_link WHERE merchant_id = $1 AND position = 2 RETURNING entry_id)
     DELETE FROM audit_entry WHERE merchant_id = $1 AND id IN (SELECT entry_id FROM link)`,
    { sequence: 2, problem: 'MISSING' },
  ],
  'an entry added': [
    `INSERT INTO audit_entry (merchant_id, actor, operation, target, channel)
     VALUES ($1, 'x', 'x', 'x', 'rest')`,
    { sequence: 7, problem: 'UNSEALED' },
  ],
  'a link repeated': [
    `INSERT INTO audit_link SELECT merchant_id, 8, entry_id, hash
     FROM audit_link WHERE merchant_id = $1 AND position = 7`,
    { sequence: 8, problem: 'ALTERED' },
  ],
  'the tail cut off': [
    'DELETE FROM audit_link WHERE merchant_id = $1 AND position > 4',
    { sequence: 5, problem: 'TRUNCATED' },
  ],
  'all of it gone': ['DELETE FROM audit_link WHERE merchant_id = $1', { sequence: 1, problem: 'TRUNCATED' }],
  'the head gone': [
    'DELETE FROM audit_head WHERE merchant_id = $1',
    { sequence: 1, problem: 'BEYOND_THE_HEAD' },
  ],
  'the head set back': [
    'UPDATE audit_head SET position = 5 WHERE merchant_id = $1',
    { sequence: 5, problem: 'HEAD_FORGED' },
  ],
  'two swapped': [
    `UPDATE audit_link SET entry_id = CASE position WHEN 2 THEN ${at(3)} ELSE ${at(2)} END
     WHERE merchant_id = $1 AND position IN (2, 3)`,
    { sequence: 2, problem: 'ALTERED' },
  ],
}
