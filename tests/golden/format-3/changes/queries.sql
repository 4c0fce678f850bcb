CREATE VIEW by_key AS SELECT k, window.start AS start, count(*) AS n, sum(v) AS total, avg(amount) AS mean,
    sum(amount) AS money, max(k) AS name FROM stream GROUP BY k, window(ts, '40 seconds', '30 seconds');
CREATE VIEW high AS SELECT k, window.start AS start, count(*) AS n, min(x) AS least FROM stream WHERE v > 60
    GROUP BY k, window(ts, '40 seconds', '30 seconds');
CREATE VIEW middle AS SELECT k, window.start AS start, count(*) AS n FROM stream WHERE v > 30 AND region = 'north'
    GROUP BY k, window(ts, '40 seconds', '30 seconds') HAVING count(*) > 1;
CREATE VIEW exact AS SELECT region, window.start AS start, median(v) AS half, percentile(v, 0.9) AS most,
    count(DISTINCT k) AS different, top_k_sum(k, v, 2) AS best
    FROM stream GROUP BY region, window(ts, '1 minute');
CREATE VIEW dropped AS SELECT region, window.start AS start, count(*) AS n FROM stream
    GROUP BY region, window(ts, '30 seconds');
CREATE VIEW replaced AS SELECT window.start AS start, count(*) AS n FROM stream WHERE v > 10
    GROUP BY window(ts, '50 seconds', '25 seconds');
CREATE VIEW lived AS SELECT k, window.start AS start, sum(v) AS total FROM stream
    GROUP BY k, window(ts, '40 seconds', '30 seconds') FOR 2 MINUTES;
CREATE VIEW ended AS SELECT region, window.start AS start, count(*) AS n FROM stream
    GROUP BY region, window(ts, '1 minute') UNTIL '2024-03-01 00:00:30';
