-- KEYS[1]: the conversations in which a person wrote. ARGV: a conversation, its value as the caller read it, update id
-- of the confirmation, a time in Unix ms before which every value is older than the confirmation.
-- Removes the conversation, unless the person wrote there since the caller read it or since the confirmation.
-- `spoke` writes the value as `<id>|<ms>`. A message that is appended without an update writes a random value, which only
-- shows that something was written.
local stamp = redis.call('HGET', KEYS[1], ARGV[1])
if stamp ~= ARGV[2] then return 0 end
local id, at = string.match(stamp, '^(%d+)|(%d+)$')
if id and tonumber(id) > tonumber(ARGV[3]) and tonumber(at) > tonumber(ARGV[4]) then return 0 end
return redis.call('HDEL', KEYS[1], ARGV[1])
