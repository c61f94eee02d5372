-- ARGV: epoch, erasure, ttl s, tag and epoch of the conversation that this was learned from ('' for
-- none), count of fields; a field, what it must hold and what it shall hold ('' = none) each; then
-- kind and content of each entry. Answers the id of the first entry, or why nothing was written.
local epoch, erasure = versions()
if epoch ~= ARGV[1] or erasure ~= ARGV[2] then return 'refused' end
local lowest = ARGV[4] ~= '' and redis.call('HGET', META, 'from:' .. ARGV[4])
if lowest and tonumber(ARGV[5]) < tonumber(lowest) then return 'refused' end
local fields = tonumber(ARGV[6])
for i = 0, fields - 1 do
  local at = 7 + i * 3
  if (redis.call('HGET', LEARNED, ARGV[at]) or '') ~= ARGV[at + 1] then return 'stale' end
end
for i = 0, fields - 1 do
  local at = 7 + i * 3
  if ARGV[at + 2] == '' then
    redis.call('HDEL', LEARNED, ARGV[at])
  else
    redis.call('HSET', LEARNED, ARGV[at], ARGV[at + 2])
  end
end
local first = 0
for at = 7 + fields * 3, #ARGV, 2 do
  local id = redis.call('HINCRBY', META, 'next_record', 1)
  if first == 0 then first = id end
  redis.call('XADD', RECORDS, id .. '-0', 'k', ARGV[at], 'j', ARGV[at + 1])
end
touch(ARGV[3])
return first
