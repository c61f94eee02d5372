-- Uses: scope
-- ARGV[1], a JSON object without fields; ARGV[2]: a member that was put into the old chat's mailbox.
return redis.call('ZREM', MAILBOX, ARGV[2])
