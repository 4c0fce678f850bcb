CREATE VIEW moments AS SELECT region, window.start AS start, stddev(x) AS spread, corr(x, v) AS together,
    skewness(x) AS skew, kurtosis(x) AS peak FROM stream
    GROUP BY region, window(ts, '1 minute', '30 seconds', '5 seconds');
CREATE VIEW sketched AS SELECT window.start AS start, approx_count_distinct(v) AS different,
    percentile_approx(v, 0.5) AS half, percentile_approx(x, 0.5) AS centre, approx_top_k(v * 0, 1) AS zeros,
    approx_top_k(abs(x * 0), 1) AS nothing, approx_top_k(substr(region, 1, 0), 1) AS empty
    FROM stream GROUP BY window(ts, '50 seconds', '25 seconds');
CREATE VIEW bits AS SELECT window.start AS start, bit_and(v) AS a, bit_or(v) AS b, bit_xor(v) AS c, bool_and(ok) AS d,
    first(v) AS e, last(region) AS f, max_by(k, x) AS g, count_if(ok) AS h FROM stream WHERE x > 0
    GROUP BY window(ts, '50 seconds', '25 seconds');
