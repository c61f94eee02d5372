-- Uses: scope
-- ARGV: 'said' or 'records': whose vectors; epoch, erasure, stamp, ttl s, then a batch: the last
-- sequence that had a vector when it was made, and pairs of sequence and packed vector, ascending.
-- Vectors are of one model and without gaps: a call without a batch drops those of another stamp, a batch that does not fit on is refused, and
-- rows of another length drop all (the model changed behind its name).
local ROWS, STAMP = VEC, 'vector_fingerprint'
if ARGV[1] == 'records' then ROWS, STAMP = RVEC, 'record_vector_fingerprint' end
local epoch, erasure = versions()
if epoch ~= ARGV[2] or erasure ~= ARGV[3] then return 'refused' end
if ROWS == VEC and redis.call('HEXISTS', META, 'lexical_only') == 1 then return 'refused' end
local is_other = redis.call('HGET', META, STAMP) ~= ARGV[4]
if #ARGV == 5 then
  if is_other then
    redis.call('UNLINK', ROWS)
    redis.call('HSET', META, STAMP, ARGV[4])
    touch(ARGV[5])
  end
  return 'ok'
end
local last = redis.call('XREVRANGE', ROWS, '+', '-', 'COUNT', 1)[1]
local last_seq = last and tonumber(string.match(last[1], '^%d+')) or 0
if is_other or last_seq < tonumber(ARGV[6]) then return 'refused' end
if last and #last[2][2] ~= #ARGV[8] then
  redis.call('UNLINK', ROWS)
  return 'refused'
end
for i = 7, #ARGV, 2 do
  if tonumber(ARGV[i]) > last_seq then redis.call('XADD', ROWS, ARGV[i] .. '-0', 'v', ARGV[i + 1]) end
end
redis.call('EXPIRE', ROWS, ARGV[5])
return 'ok'
