-- The telephone number and the address of a merchant, as payers read them on the public pages.
ALTER TABLE merchant ADD COLUMN business_phone text
  CONSTRAINT merchant_business_phone CHECK (business_phone ~ '^\+[1-9][0-9]{6,14}$');
ALTER TABLE merchant ADD COLUMN business_address text
  CONSTRAINT merchant_business_address CHECK (char_length(business_address) BETWEEN 1 AND 200);
