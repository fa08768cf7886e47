import anthropic from '../../catalog/bindings/anthropic.yaml';
import awsGeneric from '../../catalog/bindings/aws-generic.yaml';
import awsMinted from '../../catalog/bindings/aws-minted.yaml';
import awsS3 from '../../catalog/bindings/aws-s3.yaml';
import awsS3PathStyle from '../../catalog/bindings/aws-s3-path-style.yaml';
import azureMinted from '../../catalog/bindings/azure-minted.yaml';
import bitbucketApi from '../../catalog/bindings/bitbucket-api.yaml';
import bitbucketGit from '../../catalog/bindings/bitbucket-git.yaml';
import cloudflare from '../../catalog/bindings/cloudflare.yaml';
import dockerHub from '../../catalog/bindings/docker-hub.yaml';
import dockerRegistry from '../../catalog/bindings/docker-registry.yaml';
import githubApi from '../../catalog/bindings/github-api.yaml';
import githubCli from '../../catalog/bindings/github-cli.yaml';
import githubGit from '../../catalog/bindings/github-git.yaml';
import githubRegistry from '../../catalog/bindings/github-registry.yaml';
import githubUploads from '../../catalog/bindings/github-uploads.yaml';
import gitlabApi from '../../catalog/bindings/gitlab-api.yaml';
import gitlabGit from '../../catalog/bindings/gitlab-git.yaml';
import googleGemini from '../../catalog/bindings/google-gemini.yaml';
import googleMaps from '../../catalog/bindings/google-maps.yaml';
import googleMinted from '../../catalog/bindings/google-minted.yaml';
import jiraCloud from '../../catalog/bindings/jira-cloud.yaml';
import linear from '../../catalog/bindings/linear.yaml';
import notion from '../../catalog/bindings/notion.yaml';
import npm from '../../catalog/bindings/npm.yaml';
import openai from '../../catalog/bindings/openai.yaml';
import pypiUpload from '../../catalog/bindings/pypi-upload.yaml';
import pythonIndex from '../../catalog/bindings/python-index.yaml';
import sentry from '../../catalog/bindings/sentry.yaml';
import slack from '../../catalog/bindings/slack.yaml';
import stripe from '../../catalog/bindings/stripe.yaml';
import { parse } from 'yaml';
import { type BindingTemplate, parseBindingTemplate } from '../../shared/wire/binding_template.ts';

/** Text modules, by the rules of wrangler.toml; a test compares them with the catalog. */
const TEXTS: readonly string[] = [
  anthropic,
  awsGeneric,
  awsMinted,
  awsS3,
  awsS3PathStyle,
  azureMinted,
  bitbucketApi,
  bitbucketGit,
  cloudflare,
  dockerHub,
  dockerRegistry,
  githubApi,
  githubCli,
  githubGit,
  githubRegistry,
  githubUploads,
  gitlabApi,
  gitlabGit,
  googleGemini,
  googleMaps,
  googleMinted,
  jiraCloud,
  linear,
  notion,
  npm,
  openai,
  pypiUpload,
  pythonIndex,
  sentry,
  slack,
  stripe,
];

/** The ready bindings of the catalog, on a runtime without files. */
export function workerdTemplates(): readonly BindingTemplate[] {
  return TEXTS.map((text) => {
    const template = parseBindingTemplate(parse(text));
    if (template.ok) return template.value;
    throw new Error(`a template of the catalog is damaged: ${template.error.message}`);
  });
}
