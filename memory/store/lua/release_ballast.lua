-- KEYS[1]: the ballast. Frees it, which Redis allows even when it is full. One byte stays, and says that the ballast was
-- released. Answers the new length; a ballast that was never allocated stays absent.
if redis.call('STRLEN', KEYS[1]) > 1 then
  redis.call('DEL', KEYS[1])
  redis.call('SET', KEYS[1], '-')
end
return redis.call('STRLEN', KEYS[1])
