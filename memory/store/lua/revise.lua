-- Uses: scope
-- ARGV[1]: a JSON object.
--   receipt: the id under which the receipt is kept, '' for none
--   ttl_s
--   epoch, erasure, newest, known: the versions, the newest record and the fields when this was decided
--   messages: sequences to erase;  records: ids to erase
--   instead: id and kind of a record, and the number of the argument that holds its new content
--   fields: a field -> its new value ('' for none)
-- Answers a JSON object: `outcome`, and the counts of the receipt as `counts`.
local wanted = cjson.decode(ARGV[1])
local function outcome(why, counts) return cjson.encode({outcome = why, counts = counts}) end

local receipt = wanted.receipt ~= '' and receipt_of(wanted.receipt)
if receipt then return outcome('done', receipt) end
local epoch, erasure = versions()
local newest = redis.call('XREVRANGE', RECORDS, '+', '-', 'COUNT', 1)[1]
local newest_id = newest and string.match(newest[1], '^%d+') or '0'
if epoch ~= wanted.epoch or erasure ~= wanted.erasure or newest_id ~= wanted.newest then
  return outcome('stale')
end
-- A field that was written since might rest on what goes now.
local fields = redis.call('HGETALL', LEARNED)
for i = 1, #fields, 2 do
  if wanted.known[fields[i]] ~= fields[i + 1] then return outcome('stale') end
end

local function erase(stream, numbers, instead)
  local erased = 0
  for _, number in ipairs(numbers) do erased = erased + redis.call('XDEL', stream, number .. '-0') end
  if erased > 0 or (instead and next(instead)) then leave_no_bytes(stream, instead) end
  return erased
end

begin_again() -- first, because it frees before anything grows: a full Redis then accepts the rest
local instead = {}
for _, record in ipairs(wanted.instead) do
  instead[record[1] .. '-0'] = {'k', record[2], 'j', ARGV[record[3]]}
end
local messages, vectors = erase(LOG, wanted.messages), erase(VEC, wanted.messages)
local records = erase(RECORDS, wanted.records, instead)
erase(RVEC, wanted.records)
for name, value in pairs(wanted.fields) do set_field(name, value) end
touch(wanted.ttl_s)
local counts = {messages, vectors, 0, redis.call('ZCARD', MAILBOX), records}
if wanted.receipt ~= '' then return outcome('done', keep_receipt(wanted.receipt, counts)) end
return outcome('done', table.concat(counts, ','))
