import asanaConnector from '../../catalog/connectors/asana.yaml';
import cloudflareConnector from '../../catalog/connectors/cloudflare.yaml';
import githubConnector from '../../catalog/connectors/github.yaml';
import gitlabConnector from '../../catalog/connectors/gitlab.yaml';
import googleCalendarConnector from '../../catalog/connectors/google-calendar.yaml';
import jiraConnector from '../../catalog/connectors/jira.yaml';
import linearConnector from '../../catalog/connectors/linear.yaml';
import openaiConnector from '../../catalog/connectors/openai.yaml';
import sentryConnector from '../../catalog/connectors/sentry.yaml';
import slackConnector from '../../catalog/connectors/slack.yaml';
import stripeConnector from '../../catalog/connectors/stripe.yaml';
import vercelConnector from '../../catalog/connectors/vercel.yaml';
import anthropicService from '../../catalog/services/anthropic.yaml';
import awsService from '../../catalog/services/aws.yaml';
import bitbucketService from '../../catalog/services/bitbucket.yaml';
import cloudflareService from '../../catalog/services/cloudflare.yaml';
import dockerService from '../../catalog/services/docker.yaml';
import geminiService from '../../catalog/services/gemini.yaml';
import githubService from '../../catalog/services/github.yaml';
import gitlabService from '../../catalog/services/gitlab.yaml';
import jiraService from '../../catalog/services/jira.yaml';
import linearService from '../../catalog/services/linear.yaml';
import notionService from '../../catalog/services/notion.yaml';
import npmService from '../../catalog/services/npm.yaml';
import openaiService from '../../catalog/services/openai.yaml';
import pypiService from '../../catalog/services/pypi.yaml';
import sentryService from '../../catalog/services/sentry.yaml';
import slackService from '../../catalog/services/slack.yaml';
import stripeService from '../../catalog/services/stripe.yaml';
import type { ReadyService } from '../../shared/wire/ready_services.ts';
import { parseReadyServices } from './parse_services.ts';

/** Text modules, by the rules of wrangler.toml; a test compares them with the catalog. */
const SERVICES: readonly string[] = [
  anthropicService,
  awsService,
  bitbucketService,
  cloudflareService,
  dockerService,
  geminiService,
  githubService,
  gitlabService,
  jiraService,
  linearService,
  notionService,
  npmService,
  openaiService,
  pypiService,
  sentryService,
  slackService,
  stripeService,
];
const CONNECTORS: readonly string[] = [
  asanaConnector,
  cloudflareConnector,
  githubConnector,
  gitlabConnector,
  googleCalendarConnector,
  jiraConnector,
  linearConnector,
  openaiConnector,
  sentryConnector,
  slackConnector,
  stripeConnector,
  vercelConnector,
];

/** The well-known services of the catalog, on a runtime without files. */
export function workerdServices(): readonly ReadyService[] {
  return parseReadyServices({ services: SERVICES, connectors: CONNECTORS });
}
