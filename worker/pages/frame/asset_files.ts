/** An asset and its file in worker/. */
interface AssetFile {
  readonly name: string;
  readonly file: string;
}

const ISLANDS = [
  'brush.js',
  'console.js',
  'copy.js',
  'decide.js',
  'live_form.js',
  'live_list.js',
  'local_times.js',
  'notify.js',
  'palette.js',
  'push.js',
  'push_worker.js',
  'refreshed.js',
  'relative_time.js',
  'search.js',
  'stream.js',
  'view_request.js',
  'waiting.js',
];

/** All assets. worker/entries/workerd_assets.ts lists the same for a runtime without files; a test compares them. */
export const ASSET_FILES: readonly AssetFile[] = [
  { name: 'style.css', file: 'pages/style.css' },
  { name: 'icon.svg', file: 'pages/icon.svg' },
  { name: 'icon_waiting.svg', file: 'pages/icon_waiting.svg' },
  ...ISLANDS.map((name) => ({ name, file: `islands/${name}` })),
];
