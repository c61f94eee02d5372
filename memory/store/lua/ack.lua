-- KEYS: a stream of bells. ARGV: group, consumer, entry, delivery count, the delivery of another bell
-- (`<entry>|<count>`) or ''. Only while it is still ours, and while that other one is still as it was.
local function pending_of(entry)
  return redis.call('XPENDING', KEYS[1], ARGV[1], entry, entry, 1)[1]
end
local pending = pending_of(ARGV[3])
if not pending or pending[2] ~= ARGV[2] or pending[4] ~= tonumber(ARGV[4]) then return 0 end
if ARGV[5] ~= '' then
  local entry, count = string.match(ARGV[5], '^(.*)|(%d+)$')
  local other = entry ~= ARGV[3] and pending_of(entry)
  if not other or other[4] ~= tonumber(count) then return 0 end
end
redis.call('XACK', KEYS[1], ARGV[1], ARGV[3])
return redis.call('XDEL', KEYS[1], ARGV[3])
