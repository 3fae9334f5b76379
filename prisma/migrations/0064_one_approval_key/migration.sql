-- DropForeignKey
ALTER TABLE "approval_verdict" DROP CONSTRAINT "approval_verdict_transaction_id_merchant_id_fkey";

-- DropIndex
DROP INDEX "deposit_approval_transaction_id_merchant_id_key";

-- AddForeignKey
ALTER TABLE "approval_verdict" ADD CONSTRAINT "approval_verdict_merchant_id_transaction_id_fkey" FOREIGN KEY ("merchant_id", "transaction_id") REFERENCES "deposit_approval"("merchant_id", "transaction_id") ON DELETE RESTRICT ON UPDATE CASCADE;
