-- The public half of a key says to its merchant which one it is. Of a session it is a name that opens nothing.
GRANT SELECT ("key") ON "api_key" TO payments_merchant;
