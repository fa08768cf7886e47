/** A search, and the servers of which a person would expect one first. */
interface ExpectedSearch {
  readonly q: string;
  readonly first: readonly string[];
}

const POSTGRES = [
  'ai.waystation/postgres',
  'io.github.marcelo-ochoa/postgres',
  'io.github.neverinfamous/postgres-mcp-server',
  'io.github.martymarkenson/postgres-connector',
];
const FILES = [
  'io.github.bytedance/mcp-server-filesystem',
  'io.github.Digital-Defiance/mcp-filesystem',
  'io.github.rghsoftware/linux-filesystem',
];

/**
 * Sixty searches over the public registry of December 2025, judged from its entries alone. The set measures the ranking;
 * it is not changed to fit it.
 */
export const SEARCH_SET: readonly ExpectedSearch[] = [
  // A product, whose own publisher is in the registry.
  { q: 'github', first: ['io.github.github/github-mcp-server'] },
  { q: 'stripe', first: ['com.stripe/mcp'] },
  { q: 'gitlab', first: ['com.gitlab/mcp'] },
  { q: 'notion', first: ['com.notion/mcp'] },
  { q: 'paypal', first: ['com.paypal.mcp/mcp', 'io.github.paypal/paypal-mcp-server'] },
  { q: 'figma', first: ['com.figma.mcp/mcp'] },
  { q: 'linear', first: ['app.linear/linear'] },
  { q: 'supabase', first: ['com.supabase/mcp'] },
  { q: 'Vercel', first: ['com.vercel/vercel-mcp'] },
  { q: 'cloudflare', first: ['com.cloudflare.mcp/mcp'] },
  { q: 'atlassian', first: ['com.atlassian/atlassian-mcp-server'] },
  { q: 'grafana', first: ['io.github.grafana/mcp-grafana'] },
  { q: 'terraform', first: ['io.github.hashicorp/terraform-mcp-server'] },
  { q: 'mongodb', first: ['io.github.mongodb-js/mongodb-mcp-server'] },
  { q: 'redis', first: ['io.github.redis/mcp-redis'] },
  { q: 'snowflake', first: ['io.github.Snowflake-Labs/mcp'] },
  { q: 'monday', first: ['com.monday/monday.com'] },
  { q: 'todoist', first: ['net.todoist/mcp'] },
  { q: 'azure', first: ['com.microsoft/azure'] },
  { q: 'aws', first: ['io.github.aws/mcp-proxy-for-aws'] },
  { q: 'exa', first: ['ai.exa/exa'] },
  { q: 'brave', first: ['io.github.brave/brave-search-mcp-server', 'ai.smithery/brave'] },
  // Two words, which are apart in the entry or written as one.
  { q: 'github issues', first: ['io.github.github/github-mcp-server'] },
  { q: 'file system', first: FILES },
  { q: 'aws s3', first: ['io.github.aws/mcp-proxy-for-aws'] },
  { q: 'postgres database', first: POSTGRES },
  { q: 'hugging face', first: ['co.huggingface/hf-mcp-server'] },
  { q: 'microsoft learn', first: ['com.microsoft/microsoft-learn-mcp'] },
  { q: 'brave search', first: ['io.github.brave/brave-search-mcp-server'] },
  { q: 'stack overflow', first: ['com.stackoverflow.mcp/mcp'] },
  { q: 'new relic', first: ['com.newrelic/mcp-server'] },
  { q: 'chrome dev tools', first: ['io.github.ChromeDevTools/chrome-devtools-mcp'] },
  { q: 'slack messages', first: ['ai.waystation/slack'] },
  { q: 'google calendar', first: ['com.mintmcp/gcal', 'ai.smithery/mayla-debug-mcp-google-calendar2'] },
  { q: 'drive google', first: ['io.github.domdomegg/google-drive-mcp'] },
  { q: 'google sheets', first: ['io.github.domdomegg/google-sheets-mcp', 'io.github.henilcalagiya/google-sheets-mcp'] },
  { q: 'home assistant', first: ['io.github.homeassistant-ai/ha-mcp', 'io.github.Coolver/home-assistant-mcp'] },
  { q: 'apple notes', first: ['io.github.henilcalagiya/mcp-apple-notes'] },
  { q: 'youtube transcript', first: ['io.github.jkawamoto/mcp-youtube-transcript'] },
  { q: 'weather forecast', first: ['io.github.dgahagan/weather-mcp', 'io.github.rsys-vtiwari/weather-mcp'] },
  { q: 'sql server', first: ['io.github.TharanaBope/sql-server-mcp', 'io.github.ConnorBritain/mssql'] },
  {
    q: 'browser automation',
    first: ['io.github.browserbase/mcp-server-browserbase', 'io.github.therealtimex/browser-use'],
  },
  { q: 'jira issues', first: ['ai.waystation/jira', 'io.github.b1ff/atlassian-dc-mcp-jira'] },
  // Misspelled.
  { q: 'postgress', first: POSTGRES },
  { q: 'githb', first: ['io.github.github/github-mcp-server'] },
  { q: 'kubernets', first: ['io.github.containers/kubernetes-mcp-server'] },
  { q: 'elasticsearh', first: ['io.github.cr7258/elasticsearch-mcp-server'] },
  {
    q: 'promethues',
    first: ['io.github.pab1it0/prometheus-mcp-server', 'io.github.tjhop/prometheus-mcp-server'],
  },
  { q: 'sonarcube', first: ['io.github.SonarSource/sonarqube-mcp-server'] },
  { q: 'atlasian', first: ['com.atlassian/atlassian-mcp-server'] },
  { q: 'firecrwal', first: ['io.github.firecrawl/firecrawl-mcp-server'] },
  { q: 'excalidaw', first: ['io.github.cmd8/excalidraw-mcp'] },
  // The start of a word.
  { q: 'kube', first: ['io.github.containers/kubernetes-mcp-server', 'io.github.mikhae1/kubeview'] },
  { q: 'pagerd', first: ['io.github.PagerDuty/pagerduty-mcp'] },
  // A publisher, a whole name, the name of a package, a title.
  { q: 'hashicorp', first: ['io.github.hashicorp/terraform-mcp-server'] },
  { q: 'microsoft azure', first: ['com.microsoft/azure'] },
  { q: 'com.stripe/mcp', first: ['com.stripe/mcp'] },
  { q: '@upstash/context7-mcp', first: ['io.github.upstash/context7'] },
  { q: 'Financial Modeling Prep', first: ['io.github.imbenrabi/financial-modeling-prep-mcp-server'] },
  { q: 'Desktop Commander', first: ['io.github.wonderwhy-er/desktop-commander'] },
];
