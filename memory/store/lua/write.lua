-- Uses: scope
-- ARGV[1]: a JSON object.
--   epoch, erasure: the versions under which this was decided
--   ttl_s
--   learned_from: tag and epoch of the conversation that this rests on; absent if it is this scope
--   fields: a field -> the value that is expected, or of a long one {sha1}, and the value that it gets ('' for none)
--   entries: kind of an entry and the number of the argument that holds its content
-- Answers a JSON object: `outcome`, and the id of the first entry as `first` (0 without entries).
local wanted = cjson.decode(ARGV[1])
local function is_expected(value, expected)
  return value == expected or type(expected) == 'table' and redis.sha1hex(value) == expected.sha1
end
local function outcome(why, first) return cjson.encode({outcome = why, first = first or 0}) end

local epoch, erasure = versions()
if epoch ~= wanted.epoch or erasure ~= wanted.erasure then return outcome('refused') end
if wanted.learned_from then
  local tag, epoch_there = unpack(wanted.learned_from)
  local lowest = redis.call('HGET', META, 'from:' .. tag)
  if lowest and epoch_there < tonumber(lowest) then return outcome('refused') end
end
local names, new = {}, {}
for name, values in pairs(wanted.fields) do
  names[#names + 1] = name
  new[name] = values[2]
end
local present = #names > 0 and redis.call('HMGET', LEARNED, unpack(names)) or {}
for i, name in ipairs(names) do
  if not is_expected(present[i] or '', wanted.fields[name][1]) then return outcome('stale') end
end
set_fields(new)
local first, written = 0, {}
if next(new) then written[1] = LEARNED end
if #wanted.entries > 0 then written[#written + 1] = RECORDS end
for _, entry in ipairs(wanted.entries) do
  local id = redis.call('HINCRBY', META, 'next_record', 1)
  if first == 0 then first = id end
  redis.call('XADD', RECORDS, id .. '-0', 'k', entry[1], 'j', ARGV[entry[2]])
end
touch(wanted.ttl_s, written)
return outcome('written', first)
