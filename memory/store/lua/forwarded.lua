-- ARGV: mailbox members that stand in the old chat's mailbox now.
for _, member in ipairs(ARGV) do redis.call('ZREM', MAILBOX, member) end
return 'ok'
