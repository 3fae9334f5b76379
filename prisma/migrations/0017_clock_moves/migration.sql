-- AlterTable
ALTER TABLE "sandbox_clock" ADD COLUMN     "moves" TEXT[] DEFAULT ARRAY[]::TEXT[];
