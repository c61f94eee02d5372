-- ARGV: ttl s, fields of what was learned to reset: count and names; sequences of messages to erase:
-- count and numbers; ids of records to erase: the rest.
local at = 2
local function listed()
  local count, found = tonumber(ARGV[at]), {}
  for i = 1, count do found[i] = ARGV[at + i] end
  at = at + count + 1
  return found
end
local fields, seqs, ids = listed(), listed(), {}
for i = at, #ARGV do ids[#ids + 1] = ARGV[i] end
local function erase(stream, numbers)
  local erased = 0
  for _, number in ipairs(numbers) do erased = erased + redis.call('XDEL', stream, number .. '-0') end
  if erased > 0 then leave_no_bytes(stream) end
  return erased
end
local counts = {erase(LOG, seqs), erase(VEC, seqs), erase(RECORDS, ids)}
erase(RVEC, ids)
for _, field in ipairs(fields) do redis.call('HDEL', LEARNED, field) end
begin_again()
touch(ARGV[1])
return counts
