# The router of Rails, with the middleware that reads `_method`, without the rest of Rails.
require 'action_dispatch'
require 'rack'
require 'webrick'

answer = ->(name) { ->(_env) { [200, { 'Content-Type' => 'text/plain' }, [name]] } }
routes = ActionDispatch::Routing::RouteSet.new
routes.draw do
  post '/v1/refunds', to: answer['refund']
  # A colon begins a parameter there, so the name is a constraint of one.
  post '/v1/:call', to: answer['batch'], constraints: { call: /things:batchDelete/ }
  post '/users/@me', to: answer['me']
  post '/repos/:owner/:repo/merge', to: answer['merge']
  post '/v1/:thing', to: answer['thing']
end
app = Rack::MethodOverride.new(routes)

log = WEBrick::Log.new(File::NULL)
server = WEBrick::HTTPServer.new(BindAddress: '127.0.0.1', Port: 0, Logger: log, AccessLog: [])
server.mount('/', Rack::Handler::WEBrick, app)
$stdout.puts "port #{server.listeners.first.addr[1]}"
$stdout.flush
trap('TERM') { server.shutdown }
server.start
