-- ARGV: letter, '1' to put its mail back into the mailbox, ttl s. Answers whether there was one; while
-- its turn is still being closed there is none, for the commit would take the mail along.
if redis.call('HGET', TURN, 'id') == ARGV[1] then return 0 end
if redis.call('HEXISTS', DEAD, ARGV[1]) == 0 then return 0 end
for _, member in ipairs(drop_letter(ARGV[1])) do
  if ARGV[2] == '1' then redis.call('ZADD', MAILBOX, (read_entry(member)), member) end
end
touch(ARGV[3])
return 1
