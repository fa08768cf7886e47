import { stdout } from 'node:process';
import express from 'express';

const app = express();
app.post('/v1/refunds', (_request, response) => response.send('refund'));
app.post(String.raw`/v1/things\:batchDelete`, (_request, response) => response.send('batch'));
app.post('/users/@me', (_request, response) => response.send('me'));
app.post('/repos/:owner/:repo/merge', (_request, response) => response.send('merge'));
app.post('/v1/:thing', (_request, response) => response.send('thing'));
const server = app.listen(0, '127.0.0.1', () => stdout.write(`port ${server.address().port}\n`));
