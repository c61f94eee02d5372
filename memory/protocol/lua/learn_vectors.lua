-- ARGV: epoch, erasure, stamp, ttl s, then pairs of sequence and packed vector, ascending.
-- Another stamp drops all vectors and takes none: the caller starts again from the beginning.
local epoch, erasure = versions()
if epoch ~= ARGV[1] or erasure ~= ARGV[2] then return 'refused' end
if redis.call('HGET', META, 'vec_stamp') ~= ARGV[3] then
  redis.call('UNLINK', VEC)
  redis.call('HSET', META, 'vec_stamp', ARGV[3])
  touch(ARGV[4])
  return 'restart'
end
local last = redis.call('XREVRANGE', VEC, '+', '-', 'COUNT', 1)[1]
local last_seq = last and tonumber(string.match(last[1], '^%d+')) or 0
for i = 5, #ARGV, 2 do
  if tonumber(ARGV[i]) > last_seq then redis.call('XADD', VEC, ARGV[i] .. '-0', 'v', ARGV[i + 1]) end
end
redis.call('EXPIRE', VEC, ARGV[4])
return 'ok'
