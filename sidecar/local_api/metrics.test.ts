import { describe, expect, it } from 'vitest';
import { MetricsRegistry } from './metrics.ts';

describe('metrics', () => {
  it('are written in Prometheus format', () => {
    const metrics = new MetricsRegistry({ svc_requests_total: 'Requests.', svc_unused_total: 'Nothing yet.' });
    metrics.increment('svc_requests_total', { mediation: 'binding' });
    metrics.increment('svc_requests_total', { mediation: 'binding' });
    metrics.increment('svc_requests_total', { mediation: 'passthrough' });
    metrics.increment('svc_other_total');
    metrics.gauge({ name: 'svc_sessions', help: 'Live sessions.', read: () => 3 });
    expect(metrics.render()).toBe(
      [
        '# HELP svc_requests_total Requests.',
        '# TYPE svc_requests_total counter',
        'svc_requests_total{mediation="binding"} 2',
        'svc_requests_total{mediation="passthrough"} 1',
        '# HELP svc_unused_total Nothing yet.',
        '# TYPE svc_unused_total counter',
        'svc_unused_total 0',
        '# TYPE svc_other_total counter',
        'svc_other_total 1',
        '# HELP svc_sessions Live sessions.',
        '# TYPE svc_sessions gauge',
        'svc_sessions 3',
        '',
      ].join('\n'),
    );
  });

  it('escape characters that a label must not contain', () => {
    const metrics = new MetricsRegistry();
    metrics.increment('svc_x_total', { reason: 'a"b\\c\nd' });
    expect(metrics.render()).toContain('svc_x_total{reason="a\\"b\\\\c\\nd"} 1');
  });

  it('have a bounded number of label values', () => {
    const metrics = new MetricsRegistry();
    for (let n = 0; n < 10_000; n += 1) metrics.increment('svc_x_total', { host: `h${n}` });
    expect(metrics.render().split('\n').length).toBeLessThan(510);
    expect(metrics.render()).toContain('svc_x_total{overflow="true"} 9500');
  });
});
