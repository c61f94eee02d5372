-- Uses: scope
-- Keys: meta, learned, records, rvec, turn, mailbox, seen, log, vec, dead_letters
-- ARGV[1]: a JSON object.
--   epoch, erasure: the versions under which this was decided
--   ttl_s
--   revision: that under which the fields were read, 0 if it is not known
--   learned_from: tag and epoch of the conversation that this rests on; absent if it is this scope
--   fields: a field -> the value that is expected, or of a long one {sha1}, and the value that it gets ('' for none)
--   entries: kind of an entry and the number of the argument that holds its content
-- Answers a JSON object: `outcome`; if it was written, also `first`, the id of the first entry, and the new `revision`.
local wanted = cjson.decode(ARGV[1])
local function is_expected(value, expected)
  return value == expected or type(expected) == 'table' and redis.sha1hex(value) == expected.sha1
end
local function outcome(why) return cjson.encode({outcome = why}) end

local from, epoch_there = unpack(wanted.learned_from or {''})
local epoch, erasure, _, _, revision, newest, lowest = read_meta('revision', 'next_record', 'from:' .. from)
if (epoch or '0') ~= wanted.epoch or (erasure or '0') ~= wanted.erasure then return outcome('refused') end
if epoch_there and lowest and epoch_there < tonumber(lowest) then return outcome('refused') end
local names, new = {}, {}
for name, values in pairs(wanted.fields) do
  names[#names + 1] = name
  if values[1] ~= values[2] then new[name] = values[2] end
end
if #names > 0 and tonumber(revision) ~= wanted.revision then
  local present = redis.call('HMGET', LEARNED, unpack(names))
  for i, name in ipairs(names) do
    if not is_expected(present[i] or '', wanted.fields[name][1]) then return outcome('stale') end
  end
end
set_fields(new)
local last = not newest and last_of(RECORDS) -- META may have been lost, and the records stay
newest, revision = tonumber(newest or last and number_of(last) or 0), revision_after(revision)
redis.call('HSET', META, 'revision', whole(revision), 'next_record', whole(newest + #wanted.entries))
local written = {}
if next(new) then written[1] = LEARNED end
if #wanted.entries > 0 then written[#written + 1] = RECORDS end
for i, entry in ipairs(wanted.entries) do
  redis.call('XADD', RECORDS, whole(newest + i) .. '-0', 'k', entry[1], 'j', ARGV[entry[2]])
end
touch(wanted.ttl_s, written)
return cjson.encode({outcome = 'written', first = newest + 1, revision = revision})
