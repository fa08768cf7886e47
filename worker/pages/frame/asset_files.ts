/** Where an asset's text is: a file beside this one, or what a package exports. */
export interface AssetFile {
  readonly name: string;
  readonly specifier: string;
  readonly from: { readonly file: string } | { readonly package: string };
}

const island = (name: string): AssetFile => ({ name, specifier: `./${name}`, from: { file: `../islands/${name}` } });

/** Every asset there is. worker/entries/workerd_assets.ts lists the same for a runtime without files; a test holds them equal. */
export const ASSET_FILES: readonly AssetFile[] = [
  { name: 'style.css', specifier: './style.css', from: { file: './style.css' } },
  { name: 'preact.js', specifier: 'preact', from: { package: 'preact' } },
  { name: 'hooks.js', specifier: 'preact/hooks', from: { package: 'preact/hooks' } },
  ...['console.js', 'copy.js', 'live_form.js', 'live_list.js', 'refreshed.js', 'search.js'].map((name) => island(name)),
];
