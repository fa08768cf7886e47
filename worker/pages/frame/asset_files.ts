/** An asset and its file in worker/. */
interface AssetFile {
  readonly name: string;
  readonly file: string;
}

const island = (name: string): AssetFile => ({ name, file: `islands/${name}` });

/** All assets. worker/entries/workerd_assets.ts lists the same for a runtime without files; a test compares them. */
export const ASSET_FILES: readonly AssetFile[] = [
  { name: 'style.css', file: 'pages/style.css' },
  { name: 'icon.svg', file: 'pages/icon.svg' },
  ...['console.js', 'copy.js', 'live_form.js', 'live_list.js', 'refreshed.js', 'search.js'].map((name) => island(name)),
];
