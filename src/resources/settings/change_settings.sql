-- Changes the settings that are not null; they apply at once. An empty text removes the notification address,
-- the telephone number or the postal address.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION change_settings(
  merchant int,
  business_name text,
  address text,
  whitelist text[],
  language locale,
  zone text,
  phone text,
  postal_address text
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE merchant SET name = coalesce(business_name, name),
    notification_email = nullif(coalesce(address, notification_email), ''),
    ip_whitelist = coalesce(whitelist, ip_whitelist), locale = coalesce(language, locale),
    time_zone = coalesce(zone, time_zone),
    business_phone = nullif(coalesce(phone, business_phone), ''),
    business_address = nullif(coalesce(postal_address, business_address), '')
  WHERE id = change_settings.merchant
$$;
