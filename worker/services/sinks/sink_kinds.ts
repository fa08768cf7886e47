import type { SinkKindName } from '../../../shared/wire/audit_sinks.ts';
import { mailSink } from './mail_sink.ts';
import { otlpMetricsSink } from './otlp_metrics_sink.ts';
import { otlpSink } from './otlp_sink.ts';
import { otlpTracesSink } from './otlp_traces_sink.ts';
import type { SinkKind } from './sink_kind.ts';
import { s3Sink } from './s3_sink.ts';
import { slackSink } from './slack_sink.ts';
import { syslogSink } from './syslog_sink.ts';
import { webhookSink } from './webhook_sink.ts';

/** Every way to send audit events. */
export const SINK_KIND_TABLE: Readonly<Record<SinkKindName, SinkKind>> = {
  webhook: webhookSink,
  otlp: otlpSink,
  otlp_metrics: otlpMetricsSink,
  otlp_traces: otlpTracesSink,
  slack: slackSink,
  mail: mailSink,
  syslog: syslogSink,
  s3: s3Sink,
};
