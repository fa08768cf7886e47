/** An asset and the file that holds it, in worker/. */
export interface AssetFile {
  readonly name: string;
  readonly file: string;
}

const island = (name: string): AssetFile => ({ name, file: `islands/${name}` });

/** Every asset there is. worker/entries/workerd_assets.ts lists the same for a runtime without files; a test holds them equal. */
export const ASSET_FILES: readonly AssetFile[] = [
  { name: 'style.css', file: 'pages/style.css' },
  ...['console.js', 'copy.js', 'live_form.js', 'live_list.js', 'refreshed.js', 'search.js'].map((name) => island(name)),
];
