/** A login of a profile of the user's own. */
export const LOGIN = {
  name: 'key',
  title: 'My key',
  get: 'make key',
  secret: 'user/mine',
  variable: 'MY_KEY',
  placeholder: 'my-{alnum:40}',
  bindings: [{ host: 'api.example.com', scheme: 'bearer' }],
};
