-- What was learned of a scope, as far as the caller does not have it: at most `most` entries at once.
local function load_notes(known_record, known_vector, most)
  local meta = redis.call('HMGET', META, 'record_vector_fingerprint', 'generation')
  return redis.call('HGETALL', LEARNED),
    redis.call('XRANGE', RECORDS, '(' .. known_record .. '-0', '+', 'COUNT', most),
    redis.call('XLEN', RECORDS), meta[1] or '',
    redis.call('XRANGE', RVEC, '(' .. known_vector .. '-0', '+', 'COUNT', most), redis.call('XLEN', RVEC),
    meta[2] or '0'
end

-- Where memory is off, what was said since then is kept only as far as the window may show it. Done
-- now and then, for it writes anew all that stays.
local function forget_beyond_window(tail)
  local off_at = redis.call('HGET', META, 'off_at')
  if not off_at then return end
  local since = redis.call('XRANGE', LOG, '(' .. off_at .. '-0', '+')
  if #since < tail * 1.5 then return end
  for i = 1, #since - tail do
    redis.call('XDEL', LOG, since[i][1])
    redis.call('XDEL', VEC, since[i][1])
  end
  leave_no_bytes(LOG)
end
