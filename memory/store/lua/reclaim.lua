-- KEYS: a stream of bells. ARGV: group, consumer, idle ms, most. Answers {entry, tag, delivery count}.
local claimed = redis.call('XAUTOCLAIM', KEYS[1], ARGV[1], ARGV[2], ARGV[3], '0-0', 'COUNT', ARGV[4])
local bells = {}
for _, entry in ipairs(claimed[2]) do
  if entry and entry[2] then
    local pending = redis.call('XPENDING', KEYS[1], ARGV[1], entry[1], entry[1], 1)[1]
    bells[#bells + 1] = {entry[1], entry[2][2], pending and pending[4] or 0}
  end
end
return bells
