-- KEYS: the conversations a person spoke in. ARGV: conversation, its stamp as it was read, update id of
-- the confirmation, Unix ms before which every stamp is older than that, whatever its id.
-- Removes the field unless the person spoke there meanwhile, or had done so since the confirmation.
-- A stamp is `<id>|<ms>` as `spoke` notes it; that of a message appended without an update is random and
-- shows only that somebody spoke meanwhile.
local stamp = redis.call('HGET', KEYS[1], ARGV[1])
if stamp ~= ARGV[2] then return 0 end
local id, at = string.match(stamp, '^(%d+)|(%d+)$')
if id and tonumber(id) > tonumber(ARGV[3]) and tonumber(at) > tonumber(ARGV[4]) then return 0 end
return redis.call('HDEL', KEYS[1], ARGV[1])
