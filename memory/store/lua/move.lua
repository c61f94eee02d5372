-- Uses: scope
-- ARGV[1], a JSON object: `storage`, the tag under which the old chat is stored. Makes this conversation an alias
-- of it, and answers the mailbox members that must be put there.
local request = cjson.decode(ARGV[1])
if redis.call('HGET', META, 'moved_from') ~= request.storage then
  redis.call('HINCRBY', META, 'epoch', 1)
  redis.call('HSET', META, 'moved_from', request.storage)
  redis.call('DEL', LEASE, TURN)
end
redis.call('PERSIST', META)
return redis.call('ZRANGE', MAILBOX, 0, -1)
