-- Uses: scope
-- ARGV: tag of a conversation, the lowest epoch of it that still counts here, ttl s.
-- What was learned from it before is not written any more.
local lowest = redis.call('HGET', META, 'from:' .. ARGV[1])
if not lowest or tonumber(lowest) < tonumber(ARGV[2]) then
  redis.call('HSET', META, 'from:' .. ARGV[1], ARGV[2])
end
touch(ARGV[3])
return 'ok'
