-- ARGV: epoch, erasure, stamp, ttl s, then a batch: the last sequence that had a vector when it was
-- made, and pairs of sequence and packed vector, ascending. Vectors are of one model and without gaps:
-- a call without a batch drops those of another stamp, a batch that does not fit on is refused, and
-- rows of another length drop all (the model changed behind its name).
local epoch, erasure = versions()
if epoch ~= ARGV[1] or erasure ~= ARGV[2] then return 'refused' end
local is_other = redis.call('HGET', META, 'vec_stamp') ~= ARGV[3]
if #ARGV == 4 then
  if is_other then
    redis.call('UNLINK', VEC)
    redis.call('HSET', META, 'vec_stamp', ARGV[3])
    touch(ARGV[4])
  end
  return 'ok'
end
local last = redis.call('XREVRANGE', VEC, '+', '-', 'COUNT', 1)[1]
local last_seq = last and tonumber(string.match(last[1], '^%d+')) or 0
if is_other or last_seq < tonumber(ARGV[5]) then return 'refused' end
if last and #last[2][2] ~= #ARGV[7] then
  redis.call('UNLINK', VEC)
  return 'refused'
end
for i = 6, #ARGV, 2 do
  if tonumber(ARGV[i]) > last_seq then redis.call('XADD', VEC, ARGV[i] .. '-0', 'v', ARGV[i + 1]) end
end
redis.call('EXPIRE', VEC, ARGV[4])
return 'ok'
