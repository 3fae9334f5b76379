-- AlterTable
ALTER TABLE "merchant" ADD COLUMN     "notification_email" TEXT;


ALTER TABLE "merchant"
  ADD CONSTRAINT "merchant_notification_email" CHECK (char_length("notification_email") BETWEEN 3 AND 254),
  ADD CONSTRAINT "merchant_ip_whitelist" CHECK (cardinality("ip_whitelist") <= 50);
