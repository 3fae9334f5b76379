import pg from 'pg'
import { childOptions } from '../child.ts'
import { type Settling, settleAll } from '../settling.ts'

// The limit of `settle`: one call of one PL/pgSQL function per payment, over a pool. It does what has to be
// done, in tables of its own: the status by compare-and-set, the balance, the movement, the event.
const tables = `
  CREATE TABLE limit_sale (
    id bigserial PRIMARY KEY, merchant_id int NOT NULL, amount bigint NOT NULL,
    status transaction_status NOT NULL, reference text NOT NULL, settled_at timestamptz(3))
    WITH (fillfactor = 80);
  CREATE TABLE limit_balance (
    merchant_id int PRIMARY KEY, available bigint NOT NULL CHECK (available >= 0)) WITH (fillfactor = 50);
  CREATE TABLE limit_entry (
    id bigserial PRIMARY KEY, merchant_id int NOT NULL, origin text NOT NULL UNIQUE,
    debit ledger_account NOT NULL, credit ledger_account NOT NULL, amount bigint NOT NULL CHECK (amount > 0),
    balance_after bigint NOT NULL,
    created_at timestamptz(3) NOT NULL);
  CREATE INDEX ON limit_entry (merchant_id, id);
  CREATE TABLE limit_event (
    id bigserial PRIMARY KEY, merchant_id int NOT NULL, data jsonb NOT NULL,
    created_at timestamptz(3) NOT NULL);
  INSERT INTO limit_balance SELECT id, 0 FROM merchant;
  CREATE FUNCTION limit_settle(sale bigint) RETURNS boolean LANGUAGE plpgsql AS $$
  DECLARE
    paid limit_sale;
    balance bigint;
  BEGIN
    UPDATE limit_sale SET status = 'success', settled_at = now()
    WHERE id = sale AND status = 'pending' RETURNING * INTO paid;
    IF NOT FOUND THEN RETURN false; END IF;
    UPDATE limit_balance SET available = available + paid.amount
    WHERE merchant_id = paid.merchant_id RETURNING available INTO balance;
    INSERT INTO limit_entry (merchant_id, origin, debit, credit, amount, balance_after, created_at)
    VALUES (paid.merchant_id, 'sale:' || paid.id, 'clearing_operator_a', 'available', paid.amount, balance,
      now());
    INSERT INTO limit_event (merchant_id, data, created_at) VALUES (paid.merchant_id, jsonb_build_object(
      'id', paid.id, 'reference', paid.reference, 'amount', paid.amount, 'status', paid.status), now());
    RETURN true;
  END $$`

const { databaseUrl } = childOptions() as { databaseUrl: string }
const pool = new pg.Pool({ connectionString: databaseUrl, max: 16 })
await pool.query(tables)

async function settle(id: bigint): Promise<boolean> {
  const { rows } = await pool.query<{ moved: boolean }>({
    name: 'settle',
    text: 'SELECT limit_settle($1) AS moved',
    values: [id],
  })
  return rows[0]?.moved === true
}

process.on('message', ({ settling }: { settling: Settling }) => {
  void settleAll(settling, settle).then((measured) => process.send?.(measured))
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
