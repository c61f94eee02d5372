-- Uses: scope
-- ARGV[1], a JSON object: `ttl_s`. Learning continues with the next message. Messages from the time when memory was off are erased.
-- Answers how many.
local off_at = redis.call('HGET', META, 'off_at')
if not off_at then return 0 end
redis.call('HDEL', META, 'off_at')
local said = redis.call('XRANGE', LOG, '(' .. off_at .. '-0', '+')
if #said == 0 then return 0 end
for _, entry in ipairs(said) do
  redis.call('XDEL', LOG, entry[1])
  redis.call('XDEL', VEC, entry[1])
end
leave_no_bytes(LOG)
leave_no_bytes(VEC)
begin_again()
touch(cjson.decode(ARGV[1]).ttl_s)
return #said
