-- Uses: scope
-- ARGV: ttl s. Keeps all of a scope for as long as if something had been written to it now.
touch(ARGV[1])
return 'ok'
