-- ARGV: receipt id ('' for none), ttl s, epoch, erasure and newest record under which this was decided;
-- then four lists, the count of its values in front of each: sequences of messages to erase; ids of
-- records to erase; id, kind and content of records that stand instead; fields and what they shall hold
-- ('' = nothing).
local receipt = ARGV[1] ~= '' and receipt_of(ARGV[1])
if receipt then return {'done', receipt} end
local epoch, erasure = versions()
local newest = redis.call('XREVRANGE', RECORDS, '+', '-', 'COUNT', 1)[1]
local newest_id = newest and string.match(newest[1], '^%d+') or '0'
if epoch ~= ARGV[3] or erasure ~= ARGV[4] or newest_id ~= ARGV[5] then return {'stale'} end
local at = 6
local function listed()
  local count, found = tonumber(ARGV[at]), {}
  for i = 1, count do found[i] = ARGV[at + i] end
  at = at + count + 1
  return found
end
local function erase(stream, numbers, instead)
  local erased = 0
  for _, number in ipairs(numbers) do erased = erased + redis.call('XDEL', stream, number .. '-0') end
  if erased > 0 or (instead and next(instead)) then leave_no_bytes(stream, instead) end
  return erased
end
local seqs, ids, changed, fields = listed(), listed(), listed(), listed()
begin_again() -- first, since it frees before it grows: a full Redis lets the rest pass, too
local instead = {}
for i = 1, #changed, 3 do
  instead[changed[i] .. '-0'] = {'k', changed[i + 1], 'j', changed[i + 2]}
end
local counts = {erase(LOG, seqs), erase(VEC, seqs), 0, 0, erase(RECORDS, ids, instead)}
erase(RVEC, ids)
for i = 1, #fields, 2 do
  if fields[i + 1] == '' then
    redis.call('HDEL', LEARNED, fields[i])
  else
    redis.call('HSET', LEARNED, fields[i], fields[i + 1])
  end
end
touch(ARGV[2])
counts[4] = redis.call('ZCARD', MAILBOX)
if ARGV[1] ~= '' then return {'done', keep_receipt(ARGV[1], counts)} end
return {'done', table.concat(counts, ',')}
