-- Uses: scope
-- ARGV[1]: a JSON object.
--   epoch, erasure: the versions under which this was decided
--   ttl_s
--   learned_from: tag and epoch of the conversation that this rests on; absent if it is this scope
--   fields: a field -> the value that is expected and the value that it gets ('' for none)
--   entries: kind of an entry and the number of the argument that holds its content
-- Answers a JSON object: `outcome`, and the id of the first entry as `first` (0 without entries).
local wanted = cjson.decode(ARGV[1])
local function outcome(why, first) return cjson.encode({outcome = why, first = first or 0}) end

local epoch, erasure = versions()
if epoch ~= wanted.epoch or erasure ~= wanted.erasure then return outcome('refused') end
if wanted.learned_from then
  local tag, epoch_there = unpack(wanted.learned_from)
  local lowest = redis.call('HGET', META, 'from:' .. tag)
  if lowest and epoch_there < tonumber(lowest) then return outcome('refused') end
end
for name, values in pairs(wanted.fields) do
  if (redis.call('HGET', LEARNED, name) or '') ~= values[1] then return outcome('stale') end
end
for name, values in pairs(wanted.fields) do set_field(name, values[2]) end
local first = 0
for _, entry in ipairs(wanted.entries) do
  local id = redis.call('HINCRBY', META, 'next_record', 1)
  if first == 0 then first = id end
  redis.call('XADD', RECORDS, id .. '-0', 'k', entry[1], 'j', ARGV[entry[2]])
end
touch(wanted.ttl_s)
return outcome('written', first)
